/** Returns a regular expression that matches whole paths of a route in Hono's notation. */
export function pathPattern(path: string): RegExp {
  const pattern = path.replaceAll(/:\w+(?:\{(.+?)\})?/g, (_, is = "[^/]+") => String(is));
  return new RegExp(`^${pattern}$`);
}
