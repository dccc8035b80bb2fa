/** What tests import from `@jest/globals`: the globals of the suite that is running, because modules are shared by all suites of a process. */
function current(name) {
  return new Proxy(function () {}, {
    apply: (_target, _self, given) => globalThis[name](...given),
    get: (_target, key) => globalThis[name][key],
  });
}

export const describe = current("describe");
export const expect = current("expect");
export const it = current("it");
export const test = current("test");
export const beforeAll = current("beforeAll");
export const beforeEach = current("beforeEach");
export const afterAll = current("afterAll");
export const afterEach = current("afterEach");
