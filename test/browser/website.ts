/** A website of somebody else: pages on an origin of their own, under a policy that allows the service for scripts, requests and pictures, and little else. */
import { createServer, type ServerResponse } from "node:http";
import { z } from "zod";

export interface WebPage {
  readonly body: string;
  /** Attributes of the root element. */
  readonly root?: string;
  /** The page's own stylesheet. */
  readonly css?: string;
}

export interface Website {
  readonly url: string;
  /** What it shows from now on; `SERVICE` stands for the service's address. */
  show(page: WebPage): void;
  close(): Promise<void>;
}

export async function startWebsite(service: () => string): Promise<Website> {
  let shown: WebPage = { body: "" };
  const sendPage = (response: ServerResponse): void => {
    const { body, root = 'lang="en"', css } = shown;
    const policy = `default-src 'none'; script-src ${service()}; connect-src ${service()}; img-src ${service()}`;
    response.setHeader("content-security-policy", css === undefined ? policy : `${policy}; style-src 'self'`);
    response.setHeader("content-type", "text/html; charset=utf-8");
    response.end(`<!doctype html>
<html ${root}>
  <title>A website</title>
  <meta name="viewport" content="width=device-width" />
  <link rel="icon" href="${service()}/assets/icon.svg" />
  ${css === undefined ? "" : '<link rel="stylesheet" href="/page.css" />'}
  <script type="module" src="${service()}/embed.js"></script>
  <body><main><h1>A website</h1>${body.replaceAll("SERVICE", service())}</main></body>
</html>`);
  };
  const server = createServer((request, response) => {
    const { css } = shown;
    if (request.url?.startsWith("/page.css") === true)
      response.setHeader("content-type", "text/css").end(css);
    else if (request.url === "/") sendPage(response);
    else response.writeHead(404).end();
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = z.object({ port: z.int() }).parse(server.address());
  return {
    url: `http://127.0.0.1:${port}`,
    show(page) {
      shown = page;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
