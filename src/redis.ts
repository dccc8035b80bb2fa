/**
 * What the service can ask of Redis. Every command ends within 100 ms, or within a few round trips if Redis is far away. Commands are rejected
 * instead of queued while Redis is unreachable or refuses commands. Any command can be rejected, so every caller must be able to continue
 * without Redis.
 */
import { hash } from "node:crypto";

/** A Lua script with the SHA-1 by which Redis caches it. */
export interface RedisScript {
  readonly text: string;
  readonly sha1: string;
}

export function redisScript(text: string): RedisScript {
  return { text, sha1: hash("sha1", text, "hex") };
}

/** The error of every command that was refused, not answered in time, or not sent because Redis is known to be unusable. */
export class RedisGoneError extends Error {
  override readonly name = "RedisGoneError";
}

/** `shared`: works; `refusing`: refuses some or all commands; `gone`: doesn't answer. */
export type RedisState = "shared" | "refusing" | "gone";

export interface RedisLink {
  /** Whether Redis works, as far as is known. */
  reachable(): boolean;
  state(): RedisState;
  /** The commands refused since startup, by kind. */
  refusals(): Readonly<Record<string, number>>;
  /**
   * How far Redis's clock is ahead of this machine's wall clock, in ms, to within half a round trip. 0 before the first contact.
   */
  aheadMs(): number;
  /**
   * Whether `aheadMs` can be trusted. False from a step of the wall clock until Redis's clock has been read again, within 250 ms: the machine may have
   * been suspended, and `aheadMs` is then wrong by that time.
   */
  knowsTime(): boolean;
  /** Resolves when Redis first works, or after `withinMs` at the latest; rejects with a message if this Redis can never be used. */
  firstContact(withinMs: number): Promise<void>;
  run(script: RedisScript, key: string, args: readonly (string | number)[]): Promise<unknown>;
  get(key: string): Promise<string | null>;
  set(key: string, value: string, ttlMs: number): Promise<void>;
  /** Sets the key only if it doesn't exist; returns whether it did. */
  claim(key: string, value: string, ttlMs: number): Promise<boolean>;
  publish(channel: string, message: string): Promise<void>;
  /** The name of the channel in Redis, for scripts that publish. */
  channel(channel: string): string;
  /**
   * Calls `onMessage` for every message of the channel. `onGap` is called once the subscription works, and again each time that messages
   * may have been missed. Never fails: without Redis there are no messages.
   */
  subscribe(channel: string, onMessage: (message: string) => void, onGap: () => void): void;
  /** Calls `act` each time Redis becomes reachable, the first time included. */
  onReachable(act: () => void): void;
  close(): void;
}
