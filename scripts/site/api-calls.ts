import { KEY, ORIGIN } from "./for-customers.ts";

/** The example call of an operation. */
type Call = {
  readonly method: string;
  /** The path in the document, with parameters in braces. */
  readonly path: string;
  readonly body: unknown;
  /** Sends the `Idempotency-Key` that the operation requires. */
  readonly isOnce: boolean;
};

/** Placeholder of an operator token. */
const OPERATOR = "YOUR_OPERATOR_TOKEN";

/** Returns a call in three languages, as blocks of which the page shows one. */
export function callInLanguages(call: Call): string[] {
  return [
    `\`\`\`sh tab: curl\n${inCurl(call)}\n\`\`\``,
    `\`\`\`python tab: Python\n${inPython(call)}\n\`\`\``,
    `\`\`\`js tab: TypeScript\n${inTypeScript(call)}\n\`\`\``,
  ];
}

/** Returns the URL, with placeholders in capitals. */
function addressOf({ path }: Call): string {
  return ORIGIN + path.replaceAll(/\{(\w+)\}/g, (_, name: string) => name.toUpperCase());
}

function headersOf({ path, body, isOnce }: Call): [name: string, value: string][] {
  return [
    ["Authorization", `Bearer ${path.startsWith("/admin/") ? OPERATOR : KEY}`],
    ...(body === undefined ? [] : [["Content-Type", "application/json"] as [string, string]]),
    ...(isOnce ? [["Idempotency-Key", "order-1042"] as [string, string]] : []),
  ];
}

function inCurl(call: Call): string {
  const method = call.method === "GET" ? "" : ` -X ${call.method}`;
  const headers = headersOf(call).map(([name, value]) => `-H "${name}: ${value}"`);
  const json = JSON.stringify(call.body, null, 2)?.replaceAll("'", String.raw`'\''`);
  return [
    `curl -s${method} ${addressOf(call)}`,
    headers.join(" "),
    ...(json === undefined ? [] : [`-d '${json}'`]),
  ].join(" \\\n  ");
}

function inPython(call: Call): string {
  const headers = Object.fromEntries(headersOf(call).filter(([name]) => name !== "Content-Type"));
  const given = [
    `"${addressOf(call)}"`,
    `headers=${python(headers)}`,
    ...(call.body === undefined ? [] : [`json=${python(call.body)}`]),
  ].map((line) => `    ${line.replaceAll("\n", "\n    ")},`);
  return [
    "# pip install requests",
    "import requests",
    "",
    `answer = requests.${call.method.toLowerCase()}(`,
    ...given,
    ")",
    "print(answer.json())",
  ].join("\n");
}

/** Formats a value as Python, where true, false and null differ from JSON. */
function python(value: unknown): string {
  const words: Readonly<Record<string, string>> = { true: "True", false: "False", null: "None" };
  return JSON.stringify(value, null, 4).replaceAll(
    /"(?:[^"\\]|\\.)*"|\b(?:true|false|null)\b/g,
    (token) => words[token] ?? token,
  );
}

function inTypeScript(call: Call): string {
  const headers = Object.fromEntries(headersOf(call));
  const body =
    call.body === undefined
      ? []
      : [`  body: JSON.stringify(${JSON.stringify(call.body, null, 2).replaceAll("\n", "\n  ")}),`];
  return [
    `const answer = await fetch("${addressOf(call)}", {`,
    ...(call.method === "GET" ? [] : [`  method: "${call.method}",`]),
    `  headers: ${JSON.stringify(headers, null, 2).replaceAll("\n", "\n  ")},`,
    ...body,
    "});",
    "console.log(await answer.json());",
  ].join("\n");
}
