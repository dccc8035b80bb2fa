/** nginx as operators run it in front of the service: one worker, and keep-alive HTTP/1.1 connections to it. */
import { spawn } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { exchange, get } from "./raw.js";
import { pathOf } from "./tools.js";
import { freePort } from "./free-port.js";
import { temporaryFolder } from "./service.js";

export interface Proxy {
  readonly port: number;
  close(): Promise<void>;
}

export async function startNginx(servicePort: number): Promise<Proxy> {
  const folder = temporaryFolder();
  // When nginx is started by root, its worker runs as another user.
  chmodSync(folder.path, 0o755);
  const port = await freePort();
  const file = join(folder.path, "nginx.conf");
  writeFileSync(file, configuration(folder.path, port, servicePort));
  const child = spawn(pathOf("nginx") ?? "nginx", ["-p", folder.path, "-c", file], { stdio: "ignore" });
  const exited = new Promise<void>((done) => {
    child.once("exit", () => {
      folder.remove();
      done();
    });
  });
  const close = async (): Promise<void> => {
    child.kill("SIGTERM");
    await exited;
  };
  for (let attempts = 0; attempts < 400; attempts += 1) {
    const isUp = await exchange(port, get("/livez", { Connection: "close" })).then(
      (text) => text.includes('"live"'),
      () => false,
    );
    if (isUp) return { port, close };
    await new Promise((done) => setTimeout(done, 10));
  }
  await close();
  throw new Error("nginx doesn't answer");
}

function configuration(folder: string, port: number, servicePort: number): string {
  return `
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events { worker_connections 512; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  keepalive_requests 1000000;
  upstream service {
    server 127.0.0.1:${servicePort};
    keepalive 2;
    keepalive_requests 1000000;
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://service;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_request_buffering off;
    }
  }
}
`;
}
