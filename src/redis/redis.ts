/**
 * What the service asks of Redis. Every command ends within half a second and is rejected instead of queued while Redis is unreachable, so every
 * caller must be able to continue without it.
 */

/** The error of every command that was refused, not answered in time, or not sent because there is no connection. */
export class RedisGoneError extends Error {
  override readonly name = "RedisGoneError";
}

/** `shared`: works; `refusing`: refuses writes; `gone`: doesn't answer. */
export type RedisState = "shared" | "refusing" | "gone";

export interface RedisLink {
  /** True within two seconds. */
  state(): RedisState;
  /** Resolves when Redis first works, or after `withinMs` at the latest; rejects with a message if this Redis can never be used. */
  firstContact(withinMs: number): Promise<void>;
  command(name: string, ...args: readonly (string | number)[]): Promise<unknown>;
  /** Calls `act` each time Redis works again, the first time included. */
  onReachable(act: () => void): void;
  close(): void;
}
