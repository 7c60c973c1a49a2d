/** Returns an API error with the name of the form's field instead of the API's field. */
export function fieldError(message: string, param: string, label: string): string {
  const name = label.replace(/\s*[[(].*$/, "");
  const isNamed = message.startsWith(param) && !/^[\w.[]/.test(message.slice(param.length));
  const text = isNamed ? `${name}${message.slice(param.length)}` : message;
  return text.replace("GET /v1/models", "the Models page");
}
