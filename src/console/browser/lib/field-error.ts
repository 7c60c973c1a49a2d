/** Replaces the API's field name in an error by the form's label. */
export function fieldError(message: string, param: string, label: string): string {
  const name = label.replace(/\s*[[(].*$/, "");
  const isNamed = message.startsWith(param) && !/^[\w.[]/.test(message.slice(param.length));
  const text = isNamed ? `${name}${message.slice(param.length)}` : message;
  return text.replace("GET /v1/models", "the Models page");
}
