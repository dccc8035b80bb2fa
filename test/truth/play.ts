/** Plays a history step by step; the oracle judges every answer. */
import { Evidence } from "./evidence.js";
import { type History, randomOf, type Step } from "./history.js";
import { Oracle, type Violation } from "./oracle.js";
import { type SimulatedService, type Simulator, trueTime } from "./simulation.js";
import { Visitors } from "./visitors.js";
import { World } from "./world.js";

export interface Outcome {
  readonly violations: readonly Violation[];
  readonly calls: number;
  /** Calls for facts that were known and fresh, made to resolve doubts. */
  readonly repeated: number;
  /** The events of this history, so that two runs can be compared. */
  readonly trace: readonly string[];
}

/** A failed call may have opened a circuit, which allows a trial request after half a minute. */
const RECOVERED_MS = 40_000;
const MAX_WAIT_MS = 20_000;

class Player {
  readonly #service: SimulatedService;
  readonly #world: World;
  readonly #evidence = new Evidence();
  readonly #oracle: Oracle;
  readonly #visitors: Visitors;
  readonly trace: string[] = [];
  #troubledUntilMs = -Infinity;
  #isDown = false;
  #linesRead = 0;

  constructor(service: SimulatedService) {
    this.#service = service;
    const { control } = service.sandbox;
    this.#world = new World(control, () => this.#nowMs);
    this.#oracle = new Oracle(this.#world, this.#evidence);
    this.#visitors = new Visitors({
      service,
      oracle: this.#oracle,
      canAsk: () => !this.#isDown && this.#nowMs > this.#troubledUntilMs && control.holds().length === 0,
      note: (what) => this.trace.push(what),
    });
    service.onSettled(() => {
      this.#world.catchUp();
      const newLines = service.log.slice(this.#linesRead);
      this.#linesRead = service.log.length;
      if (newLines.some((line) => line.includes('"upstream.failed"')))
        this.#troubledUntilMs = this.#nowMs + RECOVERED_MS;
    });
    control.watch((answer) => {
      this.trace.push(`${answer.deliveredMs} upstream ${answer.operation} ${JSON.stringify(answer.fact)}`);
      const forCart = this.#visitors.pending.some(({ isCart }) => isCart);
      this.#evidence.add(answer, forCart);
      if (answer.operation === "check") this.#visitors.noteCheck(answer);
    });
  }

  get #nowMs(): number {
    return trueTime(this.#service.clock);
  }

  async play(history: History): Promise<Outcome> {
    await this.#service.start();
    for (const step of history) {
      this.trace.push(`${this.#nowMs} ${JSON.stringify(step)}`);
      await this.#take(step);
      await this.#service.clock.advance(1);
    }
    await this.#end();
    const { violations } = this.#oracle;
    return { violations, calls: this.#evidence.calls, repeated: this.#evidence.repeated, trace: this.trace };
  }

  /** Once nothing delays the answers, every visitor must get one. */
  async #end(): Promise<void> {
    this.#setUpstream("up");
    this.#releaseAll();
    await this.#service.clock.advance(MAX_WAIT_MS);
    for (const { startedMs } of this.#visitors.pending)
      this.#oracle.report("answered: never", this.#nowMs, `a request from ${startedMs} ms`);
  }

  async #take(step: Step): Promise<void> {
    const { clock, sandbox } = this.#service;
    const { control } = sandbox;
    if ("look" in step) this.#visitors.look(step.look, step.years, step.known === true);
    else if ("quote" in step) this.#visitors.quote(step.quote);
    else if ("prices" in step) this.#visitors.prices();
    else if ("cart" in step) this.#visitors.cart(step.cart);
    else if ("leave" in step) this.#visitors.leave(step.leave);
    else if ("after" in step) this.#world.change(step.change, step.after);
    else if ("hold" in step) control.hold({ operation: step.hold, calls: step.calls, decided: step.decided });
    else if ("release" in step) {
      const held = control.holds().flatMap((hold) => hold.answers());
      held[step.release % Math.max(1, held.length)]?.release();
    } else if ("releaseAll" in step) this.#releaseAll();
    else if ("upstream" in step) this.#setUpstream(step.upstream);
    else if ("purge" in step) this.#purge(step.purge);
    else if ("staffTier" in step) this.#service.ask("/v1/staff/tier", undefined, () => undefined, true);
    else if ("restart" in step) await this.#restart(step.restart);
    else if ("pass" in step) await clock.advance(step.pass);
    else if ("suspend" in step) this.#suspend(step.suspend);
    else this.#world.change(step);
    await clock.advance(0);
  }

  #releaseAll(): void {
    for (const hold of this.#service.sandbox.control.holds()) hold.release();
  }

  #setUpstream(to: "down" | "up"): void {
    this.#isDown = to === "down";
    this.#service.setUpstream(!this.#isDown);
  }

  #purge(what: "prices" | "availability" | "account" | "all"): void {
    if (what === "availability" || what === "all") this.#evidence.forgetChecks(this.#nowMs);
    if (what === "prices" || what === "all") this.#evidence.forgetQuotes(this.#nowMs);
    this.#service.ask("/v1/staff/cache/purge", { what }, () => undefined, true);
  }

  /** The machine sleeps, and the world goes on. Times that the service waits don't pass meanwhile. */
  #suspend(forMs: number): void {
    this.#service.clock.stepWall(forMs);
    this.#troubledUntilMs += forMs;
  }

  async #restart(downMs: number): Promise<void> {
    this.#visitors.disconnectAll();
    // A request that nobody waits for any longer is abandoned. Its answer isn't evidence, because it reaches nobody.
    await this.#service.clock.advance(0);
    this.#releaseAll();
    await this.#service.clock.advance(0);
    await this.#service.stop();
    // Checks are lost. Premium names, prices and the tier were saved.
    this.#evidence.forgetChecks(this.#nowMs);
    this.#evidence.forgetQuotes(this.#nowMs);
    await this.#service.clock.advance(downMs);
    await this.#service.start();
  }
}

/** Plays one history. The seed determines everything random in the service. */
export async function play(simulator: Simulator, history: History, seed: number): Promise<Outcome> {
  const { random } = Math;
  Math.random = randomOf(seed ^ 0x5eed);
  try {
    const service = await simulator.open();
    try {
      return await new Player(service).play(history);
    } finally {
      await service.close();
    }
  } finally {
    Math.random = random;
  }
}
