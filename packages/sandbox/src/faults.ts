/**
 * Faults on demand. A fault of an operation applies to calls after they have been counted, so the quota stays exact. A fault of the connection
 * applies before anything arrives, so nothing is counted.
 */
import type { Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Response } from "express";
import { type Fault, FAULTS } from "./fault-table.js";
import type { Play } from "./fault-wire.js";
import { type Operation, OPERATIONS } from "./operations.js";
import { PortalError } from "./portal-error.js";
import type { Answer } from "./shapes.js";

/** An operation, or all requests, including undocumented ones. */
export const TARGETS = [...OPERATIONS, "all"] as const;
export type Target = (typeof TARGETS)[number];

export interface FaultRequest {
  /** A name in the list of faults. */
  readonly fault: string;
  /** How many calls it applies to. Default: all until it is cleared. */
  readonly calls?: number | undefined;
  /** The share of calls it applies to, above 0 and up to 1 (the default), spread evenly and starting with the first. */
  readonly share?: number | undefined;
  /** How slow `slow` and the dripping ones are. Default: 1000 for `slow`, 200 a byte for the others. */
  readonly ms?: number | undefined;
  /** What `patched` merges into the answer's `data`. */
  readonly patch?: unknown;
  /** The target of redirects to another host: a host root. Default: an address where nothing listens. */
  readonly elsewhere?: string | undefined;
}

/** Reserved for documentation (RFC 5737), so nothing listens there. */
const NOWHERE = "http://192.0.2.1";
const LISTEN_AGAIN_MS = 20;

/** One fault with its settings and its counts. */
class Setting {
  readonly target: Target;
  readonly request: FaultRequest;
  readonly fault: Fault;
  struck = 0;
  #seen = 0;

  constructor(target: Target, request: FaultRequest) {
    const fault = FAULTS.get(request.fault);
    if (fault === undefined) throw new PortalError(422, `there is no fault ${request.fault}`);
    const { calls = 1, share = 1 } = request;
    if (!Number.isInteger(calls) || calls < 1)
      throw new PortalError(422, "calls: must be a whole number from 1");
    if (!(share > 0 && share <= 1)) throw new PortalError(422, "share: must be above 0 and at most 1");
    if (typeof fault.play === "string" && target !== "all")
      throw new PortalError(422, `${fault.name} applies before the operation is known: set it for all`);
    if (fault.play === "refuse" && (request.calls !== undefined || request.share !== undefined))
      throw new PortalError(
        422,
        `${fault.name} can't count calls that never arrive: it applies until it is cleared`,
      );
    this.target = target;
    this.request = request;
    this.fault = fault;
  }

  /** Whether it applies to the call that has just arrived. */
  strikes(): boolean {
    const { calls = Infinity, share = 1 } = this.request;
    if (this.struck >= calls) return false;
    this.#seen += 1;
    // The share of the calls seen, rounded up, so that it includes the first.
    if (Math.ceil(this.#seen * share - 1e-9) <= Math.ceil((this.#seen - 1) * share - 1e-9)) return false;
    this.struck += 1;
    return true;
  }
}

interface Strike {
  readonly setting: Setting;
  readonly play: Play;
  readonly nth: number;
  readonly operation: Operation | undefined;
}

const strikes = new WeakMap<Response, Strike>();
/** Sockets that a fault has written to, so they can't be used for HTTP any more. */
const spoilt = new WeakSet<Socket>();

export class Faults {
  readonly #settings = new Map<Target, Setting>();
  #server: Server | undefined;
  #address: AddressInfo | undefined;
  #opening = false;
  #again: NodeJS.Timeout | undefined;
  #stopped = false;

  /** Replaces the fault of the same target. A fault of an operation takes precedence over one of all requests. */
  set(target: Target, request: FaultRequest): void {
    this.#settings.set(target, new Setting(target, request));
    this.#openOrCloseListener();
  }

  /** Without a target: all faults. */
  clear(target?: Target): void {
    if (target === undefined) this.#settings.clear();
    else this.#settings.delete(target);
    this.#openOrCloseListener();
  }

  /** The faults that are set, with the number of calls or connections that they have applied to, and all that can be set. */
  report() {
    const active = [...this.#settings.values()].map(({ target, request, struck }) => ({
      operation: target,
      ...request,
      struck,
    }));
    return { active, known: [...FAULTS.values()].map(({ name, what }) => ({ name, what })) };
  }

  /** From now on, faults of the connection apply to this server, which must be listening. */
  guard(server: Server): void {
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("the server has no port");
    this.#server = server;
    this.#address = address;
    server.on("connection", (socket: Socket) => {
      const setting = this.#settings.get("all");
      const play = setting?.fault.play;
      if (setting === undefined || (play !== "reset" && play !== "end") || !setting.strikes()) return;
      if (play === "reset") socket.resetAndDestroy();
      else socket.destroySoon();
    });
    this.#openOrCloseListener();
  }

  /** Decides whether a fault applies to a call that has been admitted and counted; `operation` is undefined for undocumented requests. */
  admitted(res: Response, operation: Operation | undefined): void {
    const setting = this.#settings.get(operation ?? "all") ?? this.#settings.get("all");
    const play = setting?.fault.play;
    if (setting === undefined || typeof play !== "function" || !setting.strikes()) return;
    strikes.set(res, { setting, play, nth: setting.struck, operation });
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#again);
  }

  /** Closes or opens the listener as the current faults require. */
  #openOrCloseListener(): void {
    const server = this.#server;
    if (server === undefined || this.#stopped || this.#opening) return;
    clearTimeout(this.#again);
    const shut = this.#settings.get("all")?.fault.play === "refuse";
    if (shut && server.listening) {
      server.close();
      server.closeIdleConnections();
    }
    if (!shut && !server.listening) this.#listenAgain(server);
  }

  /** Another process may hold the port for a moment, and the required state may change in the meantime. */
  #listenAgain(server: Server): void {
    const settle = (inMs: number): void => {
      server.off("error", failed).off("listening", done);
      this.#opening = false;
      this.#again = setTimeout(() => this.#openOrCloseListener(), inMs);
    };
    const failed = (): void => settle(LISTEN_AGAIN_MS);
    const done = (): void => settle(0);
    this.#opening = true;
    server.once("error", failed).once("listening", done).listen(this.#address?.port, this.#address?.address);
  }
}

/** Sends an answer `ordinarily`, unless a fault applies to its call. */
export function deliver(res: Response, { status, headers, body }: Answer, ordinarily: () => void): void {
  const { req } = res;
  const { socket } = req;
  // No answer can be sent on a connection whose bytes a fault has changed.
  if (spoilt.has(socket)) socket.destroy();
  const strike = strikes.get(res);
  if (strike === undefined) {
    ordinarily();
    return;
  }
  const { setting, play, nth, operation } = strike;
  spoilt.add(socket);
  play({
    socket,
    honest: { status, headers, text: typeof body === "string" ? body : JSON.stringify(body) },
    request: {
      path: req.originalUrl,
      host: req.get("Host") ?? "",
      key: req.get("X-Service-Key") ?? "",
      secret: req.get("X-Service-Secret") ?? "",
    },
    ofOneName: operation === "check" || operation === "domain",
    nth,
    ms: setting.request.ms ?? (setting.fault.name === "slow" ? 1000 : 200),
    elsewhere: setting.request.elsewhere ?? NOWHERE,
    patch: setting.request.patch,
    honestly: () => {
      spoilt.delete(socket);
      ordinarily();
    },
  });
}
