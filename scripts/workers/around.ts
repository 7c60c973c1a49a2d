type ObjectClass = new (ctx: DurableObjectState, env: Env) => object;

/** An object's class whose instances are made of the env that `enter` answers, which may look at their state. */
export function around<C extends ObjectClass>(
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

/** Makes another env once for each one. */
export function envs(make: (env: Env) => Env): (env: Env) => Env {
  const made = new WeakMap<Env, Env>();
  return (env) => {
    const known = made.get(env) ?? make(env);
    made.set(env, known);
    return known;
  };
}
