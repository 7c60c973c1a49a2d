/** Escapes text for HTML. */
export function html(text: string): string {
  return text.replaceAll(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);
}

export const money = (cents: number): string => `$${(cents / 100).toFixed(2)}`;

/** Returns a button that sends an action with its parameters. */
export function button(
  word: string,
  label: string,
  about: Readonly<Record<string, string>> = {},
): string {
  const fields = Object.entries({ do: word, ...about }).map(
    ([name, value]) => `<input type="hidden" name="${html(name)}" value="${html(value)}">`,
  );
  return `<form method="post">${fields.join("")}<button>${html(label)}</button></form>`;
}

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:4rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
button{font:inherit;padding:.5rem 1rem;margin:.25rem 0;min-width:14rem}[role=alert]{color:#a40000}footer{color:#595959;margin-top:2rem}`;

/** Returns a page of the local payment provider. */
export function page(title: string, body: string, status = 200): Response {
  const head = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${html(title)}</title><style>${STYLE}</style>`;
  const foot = "<footer>A payment provider made up on this machine: no card, no money.</footer>";
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
  };
  return new Response(`${head}<main><h1>${html(title)}</h1>${body}</main>${foot}</html>`, {
    status,
    headers,
  });
}
