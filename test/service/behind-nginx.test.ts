/** Behind nginx, which sends the requests of many clients over a few keep-alive connections: no request is smuggled, no answers are swapped, and streams aren't buffered. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { readFileSync } from "node:fs";
import { z } from "zod";
import { FakeClock } from "../support/fake-clock.js";
import { openStream } from "../support/event-stream.js";
import { type Proxy, startNginx } from "../support/nginx.js";
import { play, type Sent, sequences } from "../support/pipelining.js";
import { describeWith } from "../support/tools.js";
import { answersIn, exchange, get } from "../support/raw.js";
import { type Service, startService, until } from "../support/service.js";

const NAUGHTY = z
  .array(z.string())
  .parse(JSON.parse(readFileSync(new URL("../corpora/blns.json", import.meta.url), "utf8")))
  .filter((_text, index) => index % 5 === 0);

describeWith("nginx", "behind nginx", () => {
  let service: Service;
  let nginx: Proxy;
  const urls: string[] = [];
  let connections = 0;
  beforeAll(async () => {
    service = await startService({ clock: new FakeClock(), env: { TRUST_PROXY_HOPS: "1" } });
    await until(() => service.calls() === 29);
    service.server.on("connection", () => {
      connections += 1;
    });
    service.server.on("request", ({ url = "" }) => {
      urls.push(url);
    });
    nginx = await startNginx(service.port);
  });
  afterAll(async () => {
    await nginx.close();
    await service.close();
  });

  /** Requests a name that nobody else requests, so that an answer to another request would be noticed. */
  let bystanders = 0;
  async function expectOwnAnswer(): Promise<void> {
    const name = `bystander-${(bystanders += 1)}.af`;
    const [answer, ...others] = answersIn(
      await exchange(nginx.port, get(`/v1/availability?domain=${name}`, { Connection: "close" })),
    );
    expect([answer?.status, others]).toEqual([200, []]);
    expect(answer?.body).toContain(`"domain":"${name}"`);
  }

  // nginx answers all others itself, or changes them before it forwards them.
  const isForwarded = ({ bytes, method }: Sent): boolean =>
    method !== "" &&
    method !== "CONNECT" &&
    !/^Expect: a miracle|^Upgrade|^Host: b|^GET \S+ HTTP\/1\.1\r\n\r\n|not a size/m.test(bytes);

  test("sequences of requests from several clients at once are answered in order", async () => {
    await Promise.all(
      sequences(isForwarded).map(async (sequence) => {
        const answers = await play(nginx.port, sequence);
        expect(answers).toHaveLength(sequence.sent.length);
        answers.forEach(({ status, body, headers }, at) => {
          const { bytes = "", method = "" } = sequence.sent[at] ?? {};
          const name = /domain=((?:slow|herat|khyber)[\w-]*\.af) /.exec(bytes)?.[1];
          if (method === "HEAD") expect(body).toBe("");
          else if (name !== undefined) expect(body).toContain(`"domain":"${name}"`);
          else if (bytes.includes(" /livez")) expect(body).toBe('{"status":"live"}');
          else if (status >= 400) expect(headers["content-type"]).toMatch(/problem\+json/);
        });
      }),
    );
    // Otherwise, the clients haven't shared connections.
    expect(connections).toBeLessThan(urls.length / 2);
  });

  test("each event of a search arrives when it is sent, although nginx buffers other answers", async () => {
    const { control } = service.sandbox;
    for (const name of ["held.af", "held.com.af"]) control.setTaken(name, false);
    const hold = control.hold({ operation: "check", asked: { domain: "held.com.af" }, calls: 1 });
    const stream = await openStream({ port: nginx.port }, "/v1/search?q=held&tlds=.af,.com.af", {
      "Accept-Encoding": "gzip",
    });
    const held = await hold.caught();
    await stream.atLeast(1);
    expect(stream.events).toMatchObject([{ event: "result", data: { domain: "held.af" } }]);
    expect([stream.ended(), stream.headers["content-encoding"]]).toEqual([false, undefined]);
    held.release();
    expect((await stream.whole()).at(-1)).toMatchObject({ event: "done", data: { complete: true } });
  });

  test("naughty strings in names, paths and headers don't swap answers", async () => {
    for (const text of NAUGHTY) {
      const encoded = encodeURIComponent(text.replaceAll(/\p{Surrogate}/gu, "?"));
      const field = Buffer.from(text)
        .toString("latin1")
        .replaceAll(/\p{Cc}/gu, " ");
      await exchange(
        nginx.port,
        get(`/v1/search?q=${encoded}&tlds=.af&only=x`, { "X-Naughty": field }) +
          get(`/${encoded}`, { Accept: field, Connection: "close" }),
      );
    }
    await expectOwnAnswer();
  });

  const SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: a\r\nX: ";
  const post = (fields: string, body: string): string =>
    `POST /v1/quotes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${fields}\r\n${body}`;
  const chunked = `0\r\n\r\n${SMUGGLED}`;

  test.each<[string, string]>([
    ["a body that contains a request", post(`Content-Length: ${SMUGGLED.length}\r\n`, SMUGGLED)],
    [
      "Content-Length before Transfer-Encoding",
      post(`Content-Length: ${chunked.length}\r\nTransfer-Encoding: chunked\r\n`, chunked),
    ],
    [
      "two Content-Length headers",
      post(`Content-Length: 0\r\nContent-Length: ${SMUGGLED.length}\r\n`, SMUGGLED),
    ],
    ["a signed Content-Length", post(`Content-Length: +0\r\n`, SMUGGLED)],
    ["a space before the colon", post(`Content-Length : ${SMUGGLED.length}\r\n`, SMUGGLED)],
    ["a folded header line", post(`Content-Length: 0\r\n ${SMUGGLED.length}\r\n`, SMUGGLED)],
    ["an unknown transfer coding", post("Transfer-Encoding: xchunked\r\n", chunked)],
    ["a chunked coding after a vertical tab", post("Transfer-Encoding:\x0bchunked\r\n", chunked)],
    [
      "two Transfer-Encoding headers",
      post("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", chunked),
    ],
    ["a chunked coding that isn't the last one", post("Transfer-Encoding: chunked, identity\r\n", chunked)],
    [
      "a chunked body in HTTP/1.0",
      post("Transfer-Encoding: chunked\r\n", chunked).replace("HTTP/1.1", "HTTP/1.0"),
    ],
    [
      "a chunk size that overflows",
      post("Transfer-Encoding: chunked\r\n", `10000000000000000\r\n${chunked}`),
    ],
    [
      "a chunk extension with a line feed",
      post("Transfer-Encoding: chunked\r\n", `2;\nxx\r\n4c\r\n${chunked}`),
    ],
    [
      "a Content-Length in the trailer",
      post("Transfer-Encoding: chunked\r\n", `0\r\nContent-Length: 30\r\n\r\n${SMUGGLED}`),
    ],
    [
      "a bare carriage return",
      `GET /livez HTTP/1.1\r\nHost: a\r\nX: y\rContent-Length: 50\r\n\r\n${SMUGGLED}`,
    ],
    ["bare line feeds", `GET /livez HTTP/1.1\nHost: a\nContent-Length: 0\n\n${SMUGGLED}`],
    ["a null byte in a header", `GET /livez HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n${SMUGGLED}`],
    [
      "a GET with a body",
      `GET /livez HTTP/1.1\r\nHost: a\r\nContent-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`,
    ],
    [
      "a body sent without waiting for 100 Continue",
      post(`Expect: 100-continue\r\nContent-Length: ${SMUGGLED.length}\r\n`, SMUGGLED),
    ],
    [
      "an upgrade to h2c",
      `GET /livez HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, Content-Length\r\nUpgrade: h2c\r\nContent-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`,
    ],
    [
      "an encoded line break in the URL",
      `GET /livez%0d%0aContent-Length:%2050 HTTP/1.1\r\nHost: a\r\nContent-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`,
    ],
  ])("%s can't smuggle a request", async (_what, attack) => {
    const isSmuggled = (url: string): boolean => url.includes("smuggled");
    const before = urls.filter(isSmuggled).length;
    // nginx may take the rest for the attacker's next request, which affects nobody else.
    const received = await exchange(nginx.port, attack, { end: true });
    await Promise.all([expectOwnAnswer(), expectOwnAnswer(), expectOwnAnswer()]);
    const smuggled = urls.filter(isSmuggled).length - before;
    // In that case, nginx forwarded it openly and sent the answer to the attacker.
    expect(smuggled).toBe(received.includes("/problems/not_found") ? 1 : 0);
    // The same bytes, sent directly to the service.
    await exchange(service.port, attack, { end: true });
    expect((await service.ask("/livez")).status).toBe(200);
  });
});
