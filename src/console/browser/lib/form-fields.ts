/** Replaces the API's field name in an error with the form's label. */
export function labelFieldError(message: string, param: string, label: string): string {
  const name = label.replace(/\s*[[(].*$/, "");
  const isNamed = message.startsWith(param) && !/^[\w.[]/.test(message.slice(param.length));
  const text = isNamed ? `${name}${message.slice(param.length)}` : message;
  return text.replace("GET /v1/models", "the Models page");
}

/** Returns the changed fields, so that saving a form doesn't undo another person's changes. */
export function selectChangedFields<T extends object>(before: T, after: T): Partial<T> {
  const known = new Map<string, unknown>(Object.entries(before));
  const differing = Object.entries(after).filter(
    ([field, value]) => JSON.stringify(value) !== JSON.stringify(known.get(field)),
  );
  return Object.fromEntries(differing) as Partial<T>;
}
