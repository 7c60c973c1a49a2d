import { readBoundedText } from "../../shared/http/bounded-body.ts";
import { IssuerUnavailableError } from "./claims.ts";

const TIMEOUT_MS = 5000;
const KEY_SET_BYTES_MAX = 256 * 1024;
const RESPONSE_BYTES_MAX = 64 * 1024;

type RequestOptions = Pick<RequestInit, "method" | "headers" | "body">;

export async function fetchFromIssuer(
  url: string,
  request: RequestOptions,
  isKeySet = false,
): Promise<Response> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const { method = "GET", headers = {}, body = null } = request;
    const requestHeaders = new Headers(headers);
    requestHeaders.set("user-agent", "turnpike"); // GitHub returns 403 without a user agent
    const response = await fetch(url, {
      method,
      headers: requestHeaders,
      body,
      redirect: "manual",
      signal,
    });
    const text = await readBoundedText(response, isKeySet ? KEY_SET_BYTES_MAX : RESPONSE_BYTES_MAX);
    if (text === null || !isUsableStatus(response.status)) throw new IssuerUnavailableError();
    const type = response.headers.get("content-type") ?? "";
    return new Response(text, { status: response.status, headers: { "content-type": type } });
  } catch {
    throw new IssuerUnavailableError();
  }
}

function isUsableStatus(status: number): boolean {
  return status === 200 || status === 201 || (status >= 400 && status < 500);
}
