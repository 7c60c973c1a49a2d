type ObjectClass = new (ctx: DurableObjectState, env: Env) => object;

/**
 * Returns a Durable Object class whose instances get the env that `enter` returns. `enter` can read
 * the object's state.
 */
export function wrapObject<C extends ObjectClass>(
  base: C,
  enter: (ctx: DurableObjectState, env: Env) => Env,
): C {
  const Base: ObjectClass = base;
  return class extends Base {
    constructor(ctx: DurableObjectState, env: Env) {
      super(ctx, enter(ctx, env));
    }
  } as C;
}

/** Returns a function that makes another env once for each env. */
export function cachedEnv(make: (env: Env) => Env): (env: Env) => Env {
  const made = new WeakMap<Env, Env>();
  return (env) => {
    const known = made.get(env) ?? make(env);
    made.set(env, known);
    return known;
  };
}
