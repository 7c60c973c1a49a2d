import { env } from "cloudflare:workers";

/** Calls of requests outside of their own isolate. */
type Counted = { objects: number; statements: number; readonly bindings: Env };

/** Returns the tests' bindings. Counts each Durable Object that is named and each D1 statement. */
export function countedBindings(): Counted {
  const counted: Counted = {
    objects: 0,
    statements: 0,
    bindings: {
      ...env,
      KEY_REGISTER: withCallHook(env.KEY_REGISTER, () => counted.objects++),
      CONSOLE_SESSION: withCallHook(env.CONSOLE_SESSION, () => counted.objects++),
      WALLET: withCallHook(env.WALLET, () => counted.objects++),
      REGION_OUTBOX: withCallHook(env.REGION_OUTBOX, () => counted.objects++),
      KEPT_RESPONSES: withCallHook(env.KEPT_RESPONSES, () => counted.objects++),
      DB: withCallHook(env.DB, () => counted.statements++),
    },
  };
  return counted;
}

/** Returns the binding. Calls `onCall` before each call of its methods. */
function withCallHook<T extends object>(binding: T, onCall: () => void): T {
  return new Proxy(binding, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property);
      if (typeof value !== "function") return value;
      return (...args: unknown[]): unknown => {
        onCall();
        return value.apply(target, args);
      };
    },
  });
}
