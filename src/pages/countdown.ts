/** Calls `tick` with the whole seconds left, now and whenever they change, with 0 last; returns what stops it. */
export function countdown(untilMs: number, tick: (secondsLeft: number) => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = (): void => {
    const leftMs = Math.max(0, untilMs - Date.now());
    if (leftMs > 0) timer = setTimeout(look, leftMs % 1000 || 1000);
    tick(Math.ceil(leftMs / 1000));
  };
  look();
  return () => {
    clearTimeout(timer);
  };
}
