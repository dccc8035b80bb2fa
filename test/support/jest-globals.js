/** Replaces `@jest/globals`. It forwards to the globals of the running suite, because all suites of a process share their modules. */
function current(name) {
  return new Proxy(function () {}, {
    apply: (_target, _self, args) => globalThis[name](...args),
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
