/**
 * Faults on demand. A fault of an operation applies to calls after they have been counted, so the quota stays exact. A fault of the connection
 * applies before anything arrives, so nothing is counted.
 */
import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Response } from "express";
import { PortalError } from "./facts.js";
import { type Fault, FAULTS } from "./fault-list.js";
import type { Play } from "./fault-wire.js";
import { type Operation, OPERATIONS } from "./operations.js";
import type { Answer } from "./failures.js";

/** An operation, or all requests, including undocumented ones. */
export const TARGETS = [...OPERATIONS, "all"] as const;
export type Target = (typeof TARGETS)[number];

export interface FaultRequest {
  /** A name in the list of faults. */
  readonly fault: string;
  /** How many calls it applies to. Default: all until it is cleared. */
  readonly calls?: number | undefined;
  /** How slow `slow` and the dripping ones are. Default: 1000 for `slow`, 200 a byte for the others. */
  readonly ms?: number | undefined;
  /** What `patched` merges into the answer's `data`. */
  readonly patch?: unknown;
  /** The target of redirects to another host: a host root. Default: an address where nothing listens. */
  readonly elsewhere?: string | undefined;
}

/** Reserved for documentation (RFC 5737), so nothing listens there. */
const NOWHERE = "http://192.0.2.1";

interface Setting {
  readonly request: FaultRequest;
  readonly fault: Fault;
  /** The calls that it has applied to. */
  struck: number;
}

interface Strike {
  readonly request: FaultRequest;
  readonly play: Play;
}

export class Faults {
  readonly #settings = new Map<Target, Setting>();
  readonly #strikes = new WeakMap<Response, Strike>();
  /** Sockets that a fault has written to, so they can't be used for HTTP any more. */
  readonly #spoilt = new WeakSet<Socket>();

  /** Replaces the fault of the same target. A fault of an operation takes precedence over one of all requests. */
  set(target: Target, request: FaultRequest): void {
    const fault = FAULTS.get(request.fault);
    if (fault === undefined) throw new PortalError(422, `there is no fault ${request.fault}`);
    if (typeof fault.play === "string" && target !== "all")
      throw new PortalError(422, `${fault.name} applies before the operation is known: set it for all`);
    this.#settings.set(target, { request, fault, struck: 0 });
  }

  /** Without a target: all faults. */
  clear(target?: Target): void {
    if (target === undefined) this.#settings.clear();
    else this.#settings.delete(target);
  }

  /** The faults that are set, with the number of calls or connections that they have applied to, and all that can be set. */
  report() {
    const active = [...this.#settings].map(([operation, { request, struck }]) => ({
      operation,
      ...request,
      struck,
    }));
    return { active, known: [...FAULTS.values()].map(({ name, kind }) => ({ name, kind })) };
  }

  /** From now on, faults of the connection apply to this server. */
  guard(server: Server): void {
    server.on("connection", (socket: Socket) => {
      const play = this.#settings.get("all")?.fault.play;
      if ((play !== "reset" && play !== "end") || this.#strike("all") === undefined) return;
      if (play === "reset") socket.resetAndDestroy();
      else socket.destroySoon();
    });
  }

  /** Decides whether a fault applies to a call that has been admitted and counted; `operation` is undefined for undocumented requests. */
  admitted(res: Response, operation: Operation | undefined): void {
    const target = operation !== undefined && this.#settings.has(operation) ? operation : "all";
    const play = this.#settings.get(target)?.fault.play;
    if (typeof play !== "function") return;
    const setting = this.#strike(target);
    if (setting !== undefined) this.#strikes.set(res, { request: setting.request, play });
  }

  /** Sends an answer `ordinarily`, unless a fault applies to its call. */
  deliver(res: Response, { status, headers, body }: Answer, ordinarily: () => void): void {
    const { req } = res;
    const { socket } = req;
    // No answer can be sent on a connection whose bytes a fault has changed.
    if (this.#spoilt.has(socket)) socket.destroy();
    const strike = this.#strikes.get(res);
    if (strike === undefined) return ordinarily();
    const { play, request } = strike;
    this.#spoilt.add(socket);
    play({
      socket,
      honest: { status, headers, text: typeof body === "string" ? body : JSON.stringify(body) },
      request: {
        path: req.originalUrl,
        key: req.get("X-Service-Key") ?? "",
        secret: req.get("X-Service-Secret") ?? "",
      },
      ms: request.ms ?? (request.fault === "slow" ? 1000 : 200),
      elsewhere: request.elsewhere ?? NOWHERE,
      patch: request.patch,
      honestly: () => {
        this.#spoilt.delete(socket);
        ordinarily();
      },
    });
  }

  /** The fault of this target, if it applies to the call or connection that has just arrived. */
  #strike(target: Target): Setting | undefined {
    const setting = this.#settings.get(target);
    if (setting === undefined || setting.struck >= (setting.request.calls ?? Infinity)) return undefined;
    setting.struck += 1;
    return setting;
  }
}
