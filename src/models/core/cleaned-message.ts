const MESSAGE_CHARACTERS_MAX = 300;
const READ_CHARACTERS_MAX = 4000;
const REMOVED = "[removed]";

const HOST_ENDINGS =
  "com|net|org|ai|io|dev|co|cloud|app|xyz|eu|us|run|sh|tech|site|de|fr|uk|cn|jp|svc|lan|corp|intranet|local|internal|localhost";
const COUNTS =
  "(?:tokens?|limit|max|min|maximum|minimum|length|count|index|line|column|position|offset|size|code|status|messages?|got|value|seed|total|used|requested)";
const OWNERS =
  "accounts?|projects?|organi[sz]ations?|orgs?|teams?|tenants?|subscriptions?|resourceGroups|workspaces?|deployments?";
const REST = "[^\\s\"'`),;]";
const GROUPS = "[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,6}";

/**
 * Patterns of texts that could identify us, our account or the provider. Patterns of whole
 * addresses come before patterns of their parts.
 */
const IDENTIFYING_PATTERNS: readonly RegExp[] = [
  /\b[a-z][a-z0-9+.-]{1,20}:\/\/\S+/gi,
  /[\w.+-]{1,100}@[\w-]{1,100}\.[\w.-]{1,100}/g,
  /\barn:[^\s"'`),;]+/gi, // An AWS resource name.
  new RegExp(`/?\\b(?:${OWNERS})/${REST}+`, "gi"),
  new RegExp(`\\b(?:${OWNERS})[ _-]?(?:number|id)?\\s?[:=#]\\s?["'\`]?[\\w.-]+`, "gi"),
  new RegExp(`\\b(?:[a-z0-9-]{1,63}\\.){1,8}[a-z]{2,24}(?::\\d+)?/${REST}*`, "gi"), // A host and path.
  new RegExp(`\\b(?:[a-z0-9-]{1,63}\\.){1,8}(?:${HOST_ENDINGS})\\b(?::\\d+)?(?:/\\S*)?`, "gi"),
  /\blocalhost(?::\d+)?(?:\/\S*)?/gi,
  /\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b/g,
  new RegExp(
    `\\[?(?<!\\w)(?:${GROUPS}::(?:${GROUPS})?|(?<!:)::${GROUPS}|[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){3,7})(?!\\w|:[\\w:])(?:%\\w+)?(?:\\](?::\\d+)?)?`,
    "gi",
  ),
  new RegExp(
    `\\b(?![\\w-]{0,60}${COUNTS}:)(?:[a-z][\\w-]{0,62}:\\d{4,5}|(?=[a-z_]{0,62}[\\d-])[a-z][\\w-]{0,62}:\\d{2,5})\\b(?:/${REST}*)?`,
    "gi",
  ), // a host and port
  /(?<![\w.\]/])(?:~|[A-Z]:)?(?:[/\\](?!(?:v\d|chat|messages|tools|input|response|properties|\d)\b)[\w.@+-]{1,100}){2,20}/gi, // a file
  /\b\d{12}\b/g, // an account or project number
  /\bBearer\s+\S+/gi,
  /\b(?:sk|pk|gsk|xai|key|api[-_]?key|token|svc_sk|org|organization|proj|project|acct|account|user|req|request)[-_][A-Za-z0-9*_-]{6,}/gi,
  /\S{0,100}\*{3,}\S*/g, // a masked key
  /\(?(?:\/[\w.@-]{1,100}){1,20}(?::\d+){1,2}\)?/g, // a file and line of a stack trace
];
const OPAQUE_WORD = /[A-Za-z0-9_-]{24,}/g;

/**
 * Returns a provider's message as one line of at most 300 characters. Removes keys, addresses,
 * hosts, account IDs and `secret`.
 */
export function cleanMessage(message: string, secret?: string): string {
  let text = message.slice(0, READ_CHARACTERS_MAX);
  if (secret !== undefined && secret !== "") text = text.replaceAll(secret, REMOVED);
  for (const pattern of IDENTIFYING_PATTERNS) text = text.replace(pattern, REMOVED);
  text = text.replace(OPAQUE_WORD, (word) => (/\d/.test(word) ? REMOVED : word));
  // oxlint-disable-next-line no-control-regex -- the pattern removes control characters
  text = text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\s]+/g, " ").trim();
  return text.length <= MESSAGE_CHARACTERS_MAX
    ? text
    : `${text.slice(0, MESSAGE_CHARACTERS_MAX - 1).toWellFormed()}…`;
}

/** Reports whether clients can see an error code: a plain word without keys. */
export function isSafeErrorCode(code: string, secret?: string): boolean {
  if (secret !== undefined && secret !== "" && code.includes(secret)) return false;
  const opaqueWords = (code.match(OPAQUE_WORD) ?? []).some((word) => /\d/.test(word));
  return !opaqueWords && /^[a-z][a-z0-9_]{0,63}$/.test(code);
}

export function isSafeErrorParam(param: string, secret?: string): boolean {
  return /^[\w.[\]-]{1,100}$/.test(param) && cleanMessage(param, secret) === param;
}
