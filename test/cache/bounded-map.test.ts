import { describe, expect, test } from "@jest/globals";
import { BoundedMap } from "../../src/bounded-map.js";

const filled = (): BoundedMap<string, number> => {
  const map = new BoundedMap<string, number>(2);
  map.set("a", 1).set("b", 2);
  return map;
};

describe("a bounded map", () => {
  test("drops its oldest entry when a new one doesn't fit", () => {
    expect([...filled().set("c", 3).keys()]).toEqual(["b", "c"]);
  });

  test("drops nothing when an entry is replaced, and keeps the age of that entry", () => {
    const map = filled().set("a", 4);
    expect([...map]).toEqual([
      ["a", 4],
      ["b", 2],
    ]);
    expect([...map.set("c", 3).keys()]).toEqual(["b", "c"]);
  });

  test("makes an entry the newest if it is deleted before it is set", () => {
    const map = filled();
    map.delete("a");
    map.set("a", 1);
    expect([...map.set("c", 3).keys()]).toEqual(["a", "c"]);
  });
});
