/**
 * Runs functions in later turns of the event loop, a few per turn, in order. Node accepts one connection per turn, so turns must stay short
 * for new clients to get through.
 */
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
