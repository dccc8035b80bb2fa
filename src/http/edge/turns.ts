/**
 * Spreads work over turns of the event loop. Node accepts one connection per turn, so turns must stay short for new clients to get through.
 */

/** Runs functions in later turns, a few per turn, in order. */
export function inTurns(maxPerTurn: number): (act: () => void) => void {
  const waiting: (() => void)[] = [];
  let isScheduled = false;

  function takeTurn(): void {
    isScheduled = false;
    for (const act of waiting.splice(0, maxPerTurn)) act();
    if (waiting.length > 0) schedule();
  }
  function schedule(): void {
    if (!isScheduled) setImmediate(takeTurn);
    isScheduled = true;
  }
  return (act) => {
    waiting.push(act);
    schedule();
  };
}

/** So many turns in a row that each accepted a connection are a crowd at the door. */
const CROWD_TURNS = 5;
/** After so many, work goes on beside the crowd, a piece per turn. */
const PATIENT_TURNS = 500;

export interface Doorman {
  /** Call for every accepted connection. */
  accepted(): void;
  /** Runs the function immediately, or, while a crowd is being let in, afterwards. */
  run(act: () => void): void;
}

/** Lets a crowd of new connections in before their expensive requests are served, so that others don't wait behind each of them. */
export function createDoorman(): Doorman {
  const waiting: (() => void)[] = [];
  let hasAccepted = false;
  let crowdedTurns = 0;
  let isWatching = false;

  function endTurn(): void {
    crowdedTurns = hasAccepted ? crowdedTurns + 1 : 0;
    hasAccepted = false;
    if (crowdedTurns === 0 || crowdedTurns > PATIENT_TURNS) waiting.shift()?.();
    if (crowdedTurns > 0 || waiting.length > 0) setImmediate(endTurn);
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
      if (crowdedTurns < CROWD_TURNS && waiting.length === 0) act();
      else waiting.push(act);
    },
  };
}
