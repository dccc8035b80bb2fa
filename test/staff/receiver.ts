/** A receiver of notices that notes what it accepts, and behaves as the test says. */
import { createHmac } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import { z } from "zod";
import type { FakeClock } from "../support/fake-clock.js";

export const SECRET = "a-secret-of-sixteen-or-more";

const noticeShape = z.strictObject({
  id: z.string(),
  at: z.iso.datetime(),
  kind: z.string(),
  state: z.string(),
  text: z.string(),
  details: z.record(z.string(), z.unknown()),
});
type Notice = z.infer<typeof noticeShape>;

export class Receiver {
  readonly taken: Notice[] = [];
  readonly headers: IncomingHttpHeaders[] = [];
  attempts = 0;
  answer: (response: ServerResponse, notice: Notice) => void = (response) => response.end();
  readonly #server: Server = createServer((request, response) => {
    let body = "";
    request.on("data", (part: Buffer) => (body += part.toString()));
    request.on("end", () => {
      this.attempts += 1;
      const { headers } = request;
      const signature = `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`;
      const notice = noticeShape.parse(JSON.parse(body));
      if (headers["x-signature"] !== signature) throw new Error("the signature is wrong");
      this.headers.push(headers);
      response.on("finish", () => {
        if (response.statusCode === 200) this.taken.push(notice);
      });
      this.answer(response, notice);
    });
  });
  port = 0;

  async open(port = 0): Promise<void> {
    await new Promise<void>((done) => this.#server.listen(port, "127.0.0.1", done));
    const address = this.#server.address();
    this.port = typeof address === "object" && address !== null ? address.port : 0;
  }
  get env() {
    return { NOTIFY_URL: `http://127.0.0.1:${this.port}/hook`, NOTIFY_SECRET: SECRET };
  }
  async close(): Promise<void> {
    const closed = new Promise((done) => this.#server.close(done));
    this.#server.closeAllConnections();
    await closed;
  }
  of(kind: string): string[] {
    return this.taken.filter((one) => one.kind === kind).map(({ state }) => state);
  }
}

/** Time passes in small steps, and what is on its way arrives. */
export async function pass(clock: FakeClock, ms: number, stepMs = 5_000): Promise<void> {
  for (let left = ms; left > 0; left -= stepMs) {
    await clock.advance(Math.min(stepMs, left));
    await new Promise((done) => setTimeout(done, 8));
  }
}
