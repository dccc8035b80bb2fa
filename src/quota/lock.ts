/**
 * Exclusive ownership of a file, by a socket next to it on which the owner listens. The kernel closes it when the process ends, so nothing is left
 * over after kill -9, no process id can be mistaken for another's, and containers that share a volume see each other.
 */
import { hash } from "node:crypto";
import { chmod, rm } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { systemCodeOf } from "../system-error.js";

/** Longer socket paths don't fit into a socket address. */
const MAX_SOCKET_PATH_LENGTH = 100;
const ATTEMPTS = 5;
const START_MS = 25;

export class InUseError extends Error {
  constructor(path: string) {
    super(
      `${path} is in use by another running process: several processes share a quota only through REDIS_URL`,
    );
    this.name = "InUseError";
  }
}

function listen(address: string): Promise<Server> {
  return new Promise((done, failed) => {
    const server = createServer((socket) => {
      socket.destroy();
    });
    server.once("error", failed);
    server.listen(address, () => {
      server.unref();
      done(server);
    });
  });
}

/** Whether an owner answers. Only a refused connection or a missing socket proves that there is none. */
function answers(address: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(address);
    socket.once("connect", () => {
      socket.destroy();
      done(true);
    });
    socket.once("error", (error) => {
      done(!["ECONNREFUSED", "ENOENT"].includes(systemCodeOf(error)));
    });
  });
}

function addressElsewhere(path: string): string {
  const name = `quota-${hash("sha256", resolve(path), "hex").slice(0, 24)}.lock`;
  return process.platform === "win32" ? `\\\\.\\pipe\\${name}` : join(tmpdir(), name);
}

async function claimAt(address: string, path: string): Promise<Server> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    try {
      const server = await listen(address);
      // A socket gets its mode from the umask; STATE_DIR promises files for the owner alone. Pipes of Windows have no mode.
      if (process.platform !== "win32") await chmod(address, 0o600);
      return server;
    } catch (error) {
      if (systemCodeOf(error) !== "EADDRINUSE") throw error;
    }
    if (await answers(address)) throw new InUseError(path);
    // A starting process binds its socket a moment before it listens.
    await sleep(START_MS);
    if (await answers(address)) throw new InUseError(path);
    await rm(address, { force: true });
  }
  throw new InUseError(path);
}

/** Owns `path` until the returned function is called or the process ends; rejects with InUseError while another process owns it. */
export async function claimLock(path: string): Promise<() => Promise<void>> {
  const beside = `${path}.lock`;
  const short = process.platform !== "win32" && Buffer.byteLength(beside) <= MAX_SOCKET_PATH_LENGTH;
  let server: Server;
  try {
    server = await claimAt(short ? beside : addressElsewhere(path), path);
  } catch (error) {
    // Some shared file systems don't support sockets; then at least the processes on this machine see each other.
    if (error instanceof InUseError || !short) throw error;
    server = await claimAt(addressElsewhere(path), path);
  }
  return () =>
    new Promise((done) => {
      server.close(() => {
        done();
      });
    });
}
