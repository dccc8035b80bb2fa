/** Posts one notice to the receiver. Redirects aren't followed, and no proxy is used: both would hand the notice to somebody else. */
import { createHmac } from "node:crypto";
import { Agent as HttpAgent, request as overHttp } from "node:http";
import { Agent as HttpsAgent, request as overHttps } from "node:https";
import type { Clock } from "../clock.js";
import type { Receiver } from "../config/env.js";
import { systemCodeOf } from "../system-error.js";

const DEADLINE_MS = 10_000;

/** Resolves with null once the receiver has answered with 2xx, or with why it wasn't delivered; never rejects. */
export function notify(
  { url, secret }: Pick<Receiver, "url" | "secret">,
  notice: object,
  clock: Clock,
  signal?: AbortSignal,
): Promise<string | null> {
  const body = JSON.stringify(notice);
  const target = new URL(url.current());
  const isPlain = target.protocol === "http:";
  // An agent of its own: Node's global one may be told to use a proxy.
  const agent = isPlain ? new HttpAgent() : new HttpsAgent();
  return new Promise((settle) => {
    const end = (problem: string | null): void => {
      cancelDeadline();
      sent.destroy();
      agent.destroy();
      settle(problem);
    };
    const sent = (isPlain ? overHttp : overHttps)(target, {
      method: "POST",
      agent,
      signal,
      headers: {
        "Content-Type": "application/json",
        "Content-Length": Buffer.byteLength(body),
        Date: new Date(clock.now()).toUTCString(),
        "X-Signature": `sha256=${createHmac("sha256", secret.current()).update(body).digest("hex")}`,
      },
    });
    const cancelDeadline = clock.after(DEADLINE_MS, () => {
      end(`no answer within ${DEADLINE_MS / 1000} s`);
    });
    sent.on("response", ({ statusCode = 0 }) => {
      end(statusCode >= 200 && statusCode < 300 ? null : `status ${statusCode}`);
    });
    // A message may quote the address, which can contain a secret.
    sent.on("error", (error) => {
      end(systemCodeOf(error) ?? "no connection");
    });
    sent.end(body);
  });
}
