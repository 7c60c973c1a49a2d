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
      KEY_REGISTER: watched(env.KEY_REGISTER, () => counted.objects++),
      CONSOLE_SESSION: watched(env.CONSOLE_SESSION, () => counted.objects++),
      WALLET: watched(env.WALLET, () => counted.objects++),
      REGION_OUTBOX: watched(env.REGION_OUTBOX, () => counted.objects++),
      KEPT_RESPONSES: watched(env.KEPT_RESPONSES, () => counted.objects++),
      DB: watched(env.DB, () => counted.statements++),
    },
  };
  return counted;
}

/** Returns the binding. Calls `told` before each call of its methods. */
function watched<T extends object>(binding: T, told: () => void): T {
  return new Proxy(binding, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property);
      if (typeof value !== "function") return value;
      return (...given: unknown[]): unknown => {
        told();
        return value.apply(target, given);
      };
    },
  });
}
