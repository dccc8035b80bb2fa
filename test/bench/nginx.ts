/** nginx in front of an upstream, with what the service does too: cache, client limit, security headers and a JSON log line. It has one worker. */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../support/free-port.js";
import { Server, temporaryFolder } from "./server.js";

/** Where packages install it. Some of these folders aren't in an ordinary user's PATH. */
const CANDIDATES = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/opt/homebrew/bin/nginx"];

/** Null if nginx isn't installed. */
export function nginxProgram(): string | null {
  if (!spawnSync("nginx", ["-v"]).error) return "nginx";
  return CANDIDATES.find((path) => existsSync(path)) ?? null;
}

export async function startNginx(program: string, upstreamPort: number): Promise<Server> {
  const folder = temporaryFolder();
  // When nginx is started by root, its worker runs as another user.
  chmodSync(folder, 0o755);
  const port = await freePort();
  const file = join(folder, "nginx.conf");
  writeFileSync(file, configuration(folder, port, upstreamPort));
  return new Server({ command: [program, "-p", folder, "-c", file], port, workers: "worker process" });
}

function configuration(folder: string, port: number, upstreamPort: number): string {
  return `
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events { worker_connections 1024; }
http {
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  proxy_cache_path ${folder}/cache keys_zone=answers:10m;
  limit_req_zone $binary_remote_addr zone=clients:10m rate=1000000r/s;
  log_format line escape=json '{"time":"$time_iso8601","level":"info","event":"http.request","requestId":"$request_id",'
    '"method":"$request_method","route":"/v1/availability","status":$status,"durationMs":$request_time}';
  access_log /dev/null line buffer=64k flush=100ms;
  keepalive_requests 1000000000;
  server {
    listen 127.0.0.1:${port};
    server_tokens off;
    location /v1/ {
      limit_req zone=clients burst=1000000 nodelay;
      proxy_pass http://127.0.0.1:${upstreamPort};
      proxy_cache answers;
      proxy_cache_valid 200 15m;
      add_header X-Request-Id $request_id;
      add_header Content-Security-Policy "default-src 'none';frame-ancestors 'none'";
      add_header Cross-Origin-Opener-Policy same-origin;
      add_header Cross-Origin-Resource-Policy cross-origin;
      add_header Origin-Agent-Cluster ?1;
      add_header Referrer-Policy no-referrer;
      add_header Strict-Transport-Security "max-age=31536000; includeSubDomains";
      add_header X-Content-Type-Options nosniff;
      add_header X-DNS-Prefetch-Control off;
      add_header X-Download-Options noopen;
      add_header X-Frame-Options SAMEORIGIN;
      add_header X-Permitted-Cross-Domain-Policies none;
      add_header X-XSS-Protection 0;
      add_header Vary Origin;
      add_header Access-Control-Expose-Headers ETag,RateLimit,RateLimit-Policy,Retry-After,X-Request-Id;
      add_header RateLimit-Policy '"1000000-in-1s"; q=1000000; w=1';
      add_header Cache-Control "private, max-age=5";
    }
  }
}
`;
}
