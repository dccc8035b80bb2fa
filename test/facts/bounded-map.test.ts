import { expect, test } from "@jest/globals";
import { BoundedMap } from "../../src/bounded-map.js";

const filled = (): BoundedMap<string, number> => new BoundedMap<string, number>(2).set("a", 1).set("b", 2);

function valuesOf(map: BoundedMap<string, number>): number[] {
  const values: number[] = [];
  map.forEach((value) => values.push(value));
  return values;
}

test("a bounded map drops its oldest entry when a new one doesn't fit; setting an entry makes it the newest, reading doesn't", () => {
  const read = filled();
  expect([read.get("a"), read.get("c")]).toEqual([1, undefined]);
  expect(valuesOf(read.set("c", 3))).toEqual([2, 3]);
  const renewed = filled().set("a", 4);
  expect([valuesOf(renewed), renewed.first()]).toEqual([[2, 4], 2]);
  expect(valuesOf(renewed.set("c", 3))).toEqual([4, 3]);
});

test("a bounded map can be emptied while its values are read, oldest first", () => {
  const map = filled();
  const seen: [value: number, oldest: number | undefined][] = [];
  map.forEach((value) => {
    seen.push([value, map.first()]);
    map.delete(value === 1 ? "a" : "b");
  });
  const oldestFirst = [1, 2].map((value) => [value, value]);
  expect([seen, map.first()]).toEqual([oldestFirst, undefined]);
});
