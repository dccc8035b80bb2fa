import { describe, expect, test } from "@jest/globals";
import { BoundedMap } from "../../src/bounded-map.js";

const filled = (): BoundedMap<string, number> => new BoundedMap<string, number>(2).set("a", 1).set("b", 2);

function valuesOf(map: BoundedMap<string, number>): number[] {
  const values: number[] = [];
  map.forEach((value) => values.push(value));
  return values;
}

describe("a bounded map", () => {
  test("drops its oldest entry when a new one doesn't fit", () => {
    expect(valuesOf(filled().set("c", 3))).toEqual([2, 3]);
  });

  test("makes an entry the newest when it is set again, and drops nothing", () => {
    const map = filled().set("a", 4);
    expect([valuesOf(map), map.first()]).toEqual([[2, 4], 2]);
    expect(valuesOf(map.set("c", 3))).toEqual([4, 3]);
  });

  test("doesn't make an entry the newest when it is read", () => {
    const map = filled();
    expect([map.get("a"), map.get("c")]).toEqual([1, undefined]);
    expect(valuesOf(map.set("c", 3))).toEqual([2, 3]);
  });

  test("can be emptied while its values are read, oldest first", () => {
    const map = filled();
    const seen: [value: number, oldest: number | undefined][] = [];
    map.forEach((value) => {
      seen.push([value, map.first()]);
      map.delete(value === 1 ? "a" : "b");
    });
    expect([seen, map.first()]).toEqual([
      [
        [1, 1],
        [2, 2],
      ],
      undefined,
    ]);
  });
});
