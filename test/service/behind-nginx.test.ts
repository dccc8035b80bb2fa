/** Behind nginx, which sends the requests of many clients over a few keep-alive connections: no request is smuggled, and streams aren't buffered. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { FakeClock } from "../support/fake-clock.js";
import { openStream } from "../support/event-stream.js";
import { type Proxy, startNginx } from "../support/nginx.js";
import { describeWith } from "../support/tools.js";
import { answersIn, exchange, get } from "../support/raw.js";
import { type Service, startService, until } from "../support/service.js";

describeWith("nginx", "behind nginx", () => {
  let service: Service;
  let nginx: Proxy;
  const urls: string[] = [];
  beforeAll(async () => {
    service = await startService({ clock: new FakeClock(), env: { TRUST_PROXY_HOPS: "1" } });
    await until(() => service.calls() === 29);
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
    ["a space before the colon", post(`Content-Length : ${SMUGGLED.length}\r\n`, SMUGGLED)],
    ["a chunked coding after a vertical tab", post("Transfer-Encoding:\x0bchunked\r\n", chunked)],
    [
      "two Transfer-Encoding headers",
      post("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", chunked),
    ],
    [
      "a chunk size that overflows",
      post("Transfer-Encoding: chunked\r\n", `10000000000000000\r\n${chunked}`),
    ],
    [
      "a Content-Length in the trailer",
      post("Transfer-Encoding: chunked\r\n", `0\r\nContent-Length: 30\r\n\r\n${SMUGGLED}`),
    ],
    ["bare line feeds", `GET /livez HTTP/1.1\nHost: a\nContent-Length: 0\n\n${SMUGGLED}`],
    [
      "a GET with a body",
      `GET /livez HTTP/1.1\r\nHost: a\r\nContent-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`,
    ],
    [
      "a body sent without waiting for 100 Continue",
      post(`Expect: 100-continue\r\nContent-Length: ${SMUGGLED.length}\r\n`, SMUGGLED),
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
