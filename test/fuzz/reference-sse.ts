/**
 * Parses the server-sent events of a whole text independently of the code, by WHATWG HTML 9.2.6.
 * Returns name and data of each event that ends with a blank line or at the end of the file.
 */
export function wholeEvents(text: string): { readonly name: string; readonly data: string }[] {
  const lines = text
    .replace(/^\ufeff/, "")
    .replaceAll(/\r\n|\r/g, "\n")
    .split("\n");
  const events: { name: string; data: string }[] = [];
  let name = "";
  let data: string[] = [];
  for (const line of [...lines, "", ""]) {
    if (line === "") {
      if (data.length > 0) events.push({ name: name || "message", data: data.join("\n") });
      name = "";
      data = [];
      continue;
    }
    const [, field = "", value = ""] = /^([^:]*)(?:: ?(.*))?$/su.exec(line) ?? [];
    if (field === "data") data.push(value);
    if (field === "event") name = value;
  }
  return events;
}
