import type { Calls } from "./types.ts";

export type ApiCallName = keyof Calls;
export type ApiGetCall = Extract<ApiCallName, `GET ${string}`>;
export type ApiCallParameters<C extends ApiCallName> = {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Calls[C]["query"];
  readonly body?: Calls[C]["body"];
  readonly idempotencyKey?: string;
};

/** A failed call. `status` is 0 if no response arrived. */
export type CallFailure = {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
  readonly requestId: string | null;
  readonly docsUrl: string | null;
};
export type CallOutcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly failure: CallFailure };

const BASE = "/console/api";
const TIMEOUT_MS = 30_000;

/**
 * The organization that the page shows. The server rejects calls if the session has another one.
 */
export const displayedOrganization: { id: string | null } = { id: null };

export function buildUrl<C extends ApiCallName>(
  name: C,
  { path = {}, query = {} }: ApiCallParameters<C> = {},
): string {
  const [, template = ""] = name.split(" ");
  const filledPath = template.replaceAll(/\{(\w+)\}/g, (_, part: string) =>
    encodeURIComponent(path[part] ?? ""),
  );
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") search.set(key, String(value));
  }
  const text = search.toString();
  const base = template.startsWith(BASE) ? "" : BASE;
  return `${base}${filledPath}${text === "" ? "" : `?${text}`}`;
}

export async function call<C extends ApiCallName>(
  name: C,
  filling: ApiCallParameters<C> = {},
): Promise<CallOutcome<Calls[C]["answer"]>> {
  const [method = "GET"] = name.split(" ");
  const { body, idempotencyKey } = filling;
  return send(buildUrl(name, filling), {
    method,
    ...(body !== undefined && { body: JSON.stringify(body) }),
    headers: {
      ...(displayedOrganization.id !== null && {
        "x-organization": displayedOrganization.id,
      }),
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
    },
  });
}

/** Exchanges a key or operator token for a session cookie. Removes pasted whitespace. */
export async function login(key: string): Promise<CallOutcome<CurrentSession>> {
  return postJson(`${BASE}/login`, { key: key.replaceAll(/\s+/g, "") });
}

export async function readSession(): Promise<CallOutcome<CurrentSession>> {
  return send(`${BASE}/session`);
}

/** Switches an operator's session to an organization, or back for null. */
export async function viewOrganization(org: string | null): Promise<CallOutcome<CurrentSession>> {
  return org === null ? send(`${BASE}/as`, { method: "DELETE" }) : postJson(`${BASE}/as`, { org });
}

export async function logout(): Promise<CallOutcome<unknown>> {
  return send(`${BASE}/logout`, { method: "POST" });
}

/** Sends JSON to a path that OpenAPI doesn't describe. */
export async function postJson<T>(url: string, body: object): Promise<CallOutcome<T>> {
  const headers = { "content-type": "application/json" };
  return send(url, { method: "POST", body: JSON.stringify(body), headers });
}

/** Sends a call. The response's type is not checked. */
export async function send<T>(url: string, init: RequestInit = {}): Promise<CallOutcome<T>> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(url, { signal, credentials: "same-origin", ...init });
    const text = await response.text();
    if (response.ok) return { ok: true, value: (text === "" ? null : JSON.parse(text)) as T };
    return { ok: false, failure: failureOf(response, text) };
  } catch (error) {
    const message =
      error instanceof SyntaxError
        ? "The response isn't JSON. A proxy may have changed it."
        : "The region didn't respond.";
    return createFailedOutcome("no_answer", message);
  }
}

/** Returns a failure that the console detected, not the API. */
export function createFailedOutcome(code: string, message: string, param: string | null = null) {
  const failure = { status: 0, code, message, param, requestId: null, docsUrl: null };
  return { ok: false, failure } as const;
}

export function failureOf(response: Response, text: string): CallFailure {
  const error = parseError(text);
  const textField = (name: string): string | null => {
    const value = error[name];
    return typeof value === "string" && value !== "" ? value : null;
  };
  return {
    status: response.status,
    code: textField("code") ?? textField("type") ?? `http_${response.status}`,
    message: textField("message") ?? `The region returned ${response.status}.`,
    param: textField("param"),
    requestId: response.headers.get("x-request-id"),
    docsUrl: textField("docs_url"),
  };
}

function parseError(text: string): Readonly<Record<string, unknown>> {
  try {
    const { error } = JSON.parse(text) as { error?: Record<string, unknown> };
    return error ?? {};
  } catch {
    return {};
  }
}

export type CurrentSession = {
  readonly kind: "key" | "person" | "operator";
  readonly role: "owner" | "admin" | "billing" | "member" | "operator" | null;
  readonly organization: {
    readonly id: string;
    readonly name: string;
    readonly slug: string;
    readonly status: "active" | "suspended" | "closed";
    readonly is_personal?: boolean;
  } | null;
  readonly operator?: "read" | "support" | "finance" | "all";
  readonly person?: { readonly id: string; readonly name: string };
  readonly key: {
    readonly id: string;
    readonly name: string;
    readonly prefix: string;
    readonly limited: boolean;
  } | null;
  readonly member: { readonly id: string } | null;
  /** The session's allowed calls. `own` permits only the member's own objects. */
  readonly may: Readonly<Record<string, "all" | "own">>;
  readonly region: string;
  readonly expires_at: string;
};
