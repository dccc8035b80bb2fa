/**
 * Has what is given done in later turns of the event loop, a few in each, first come first served. Node accepts one connection a turn, so
 * turns must stay short for a new client to be heard.
 */
export function inTurns(mostPerTurn: number): (act: () => void) => void {
  const waiting: (() => void)[] = [];
  let isScheduled = false;

  function takeTurn(): void {
    isScheduled = false;
    for (const act of waiting.splice(0, mostPerTurn)) act();
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
