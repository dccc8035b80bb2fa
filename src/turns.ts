/** Spreads work over turns of the event loop, so that others are served in between. */

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
