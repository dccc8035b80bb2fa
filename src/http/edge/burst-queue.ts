/** Defers work during a burst of new connections: Node accepts one connection per turn of the event loop, so turns must stay short. */

/** A burst is this many turns in a row that each accepted a connection. */
const BURST_TURNS = 5;
/** During a burst longer than this, work continues at one piece per turn. */
const LONG_BURST_TURNS = 500;
/** After a burst, work continues at this many pieces per turn: with only one, work could arrive faster than it is done, and the queue would never empty. */
const PER_TURN = 8;

export interface BurstQueue {
  /** Call for every accepted connection. */
  accepted(): void;
  /** Runs the function immediately, or after the current burst of connections. */
  run(act: () => void): void;
}

/** Defers expensive requests until a burst of new connections has been accepted, so that a new client doesn't wait behind each of them. */
export function createBurstQueue(): BurstQueue {
  const waiting: (() => void)[] = [];
  let hasAccepted = false;
  let burstTurns = 0;
  let isWatching = false;

  function duePerTurn(): number {
    if (burstTurns === 0) return PER_TURN;
    return burstTurns > LONG_BURST_TURNS ? 1 : 0;
  }
  function endTurn(): void {
    burstTurns = hasAccepted ? burstTurns + 1 : 0;
    hasAccepted = false;
    for (const act of waiting.splice(0, duePerTurn())) act();
    if (burstTurns > 0 || waiting.length > 0) setImmediate(endTurn);
    else isWatching = false;
  }
  return {
    accepted() {
      hasAccepted = true;
      if (isWatching) return;
      isWatching = true;
      setImmediate(endTurn);
    },
    run(act) {
      if (burstTurns < BURST_TURNS && waiting.length === 0) act();
      else waiting.push(act);
    },
  };
}
