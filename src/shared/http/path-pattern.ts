/** Returns an expression that matches the whole paths of a route in Hono's notation. */
export function pathPattern(path: string): RegExp {
  const of = path.replaceAll(/:\w+(?:\{(.+?)\})?/g, (_, is = "[^/]+") => String(is));
  return new RegExp(`^${of}$`);
}
