export type Method = (...parameters: unknown[]) => unknown;
/** Returns the replacement for a property, or undefined to keep the original. */
type Replace = (property: string | symbol, real: unknown) => unknown;

/** Returns a proxy with some properties replaced. Native methods keep their own `this`. */
export function proxyOf<T extends object>(target: T, replace: Replace): T {
  return new Proxy(target, {
    get(_target, property) {
      const real: unknown = Reflect.get(target, property, target);
      const made = replace(property, real);
      if (made !== undefined) return made;
      return typeof real === "function" ? (real as Method).bind(target) : real;
    },
  });
}

const patched = new WeakSet<object>();

/** Replaces a method of a runtime object or prototype once. */
export function patch<T extends object>(
  owner: T,
  name: keyof T & string,
  run: (real: Method, that: unknown, parameters: unknown[]) => unknown,
): void {
  const real = owner[name] as Method;
  if (patched.has(real)) return;
  const made = function replacement(this: unknown, ...parameters: unknown[]): unknown {
    return run(real, this, parameters);
  };
  patched.add(made);
  Object.assign(owner, { [name]: made });
}
