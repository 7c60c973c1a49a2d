import * as oauth from "oauth4webapi";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { IssuerUnavailableError, LoginRejectedError } from "./claims.ts";
import type { IdentityClaims } from "./claims.ts";
import { EntraLogin } from "./entra.ts";
import { readGithubClaims, buildGithubLoginUrl } from "./github.ts";
import { OidcLogin } from "./oidc.ts";
import type { LoginContext } from "./oidc.ts";
import type { LoginTicket } from "./ticket.ts";

/** Logs people in with identity providers, whose metadata it caches. */
export class IssuerCache {
  readonly #oidc = new OidcLogin();
  readonly #entra = new EntraLogin();

  location(at: LoginContext, ticket: LoginTicket): Promise<Result<string>> {
    return toLoginResult(() => {
      if (at.entry.kind === "github") return buildGithubLoginUrl(at, ticket);
      return (at.entry.kind === "entra" ? this.#entra : this.#oidc).location(at, ticket);
    });
  }

  checkReachable(at: LoginContext): Promise<Result<null>> {
    return toLoginResult(async () => {
      await this.#oidc.known(at);
      return null;
    });
  }

  claims(at: LoginContext, ticket: LoginTicket, url: URL): Promise<Result<IdentityClaims>> {
    return toLoginResult(() => {
      if (at.entry.kind === "github") return readGithubClaims(at, ticket, url);
      return (at.entry.kind === "entra" ? this.#entra : this.#oidc).claims(at, ticket, url);
    });
  }
}

/** Returns new random values that protect a login (RFC 6749, RFC 7636). */
export function randomTicket(): Pick<LoginTicket, "state" | "nonce" | "verifier"> {
  return {
    state: oauth.generateRandomState(),
    nonce: oauth.generateRandomNonce(),
    verifier: oauth.generateRandomCodeVerifier(),
  };
}

async function toLoginResult<T>(call: () => Promise<T>): Promise<Result<T>> {
  try {
    return success(await call());
  } catch (error) {
    if (error instanceof LoginRejectedError) {
      return refuse({ kind: "login_refused", why: error.why });
    }
    if (error instanceof oauth.AuthorizationResponseError) {
      const why = error.error === "access_denied" ? "denied" : "refused";
      return refuse({ kind: "login_refused", why });
    }
    // The code has expired or was already used (RFC 6749 5.2).
    if (error instanceof oauth.ResponseBodyError) {
      return refuse({ kind: "login_refused", why: "expired" });
    }
    if (error instanceof IssuerUnavailableError || isConnectionError(error)) {
      return refuse({ kind: "issuer_unreachable" });
    }
    if (
      error instanceof oauth.OperationProcessingError ||
      error instanceof oauth.UnsupportedOperationError ||
      error instanceof oauth.WWWAuthenticateChallengeError
    ) {
      return refuse({ kind: "login_refused", why: "refused" });
    }
    throw error;
  }
}

function isConnectionError(error: unknown): boolean {
  const codes: readonly string[] = [oauth.PARSE_ERROR, oauth.RESPONSE_IS_NOT_JSON];
  return error instanceof oauth.OperationProcessingError && codes.includes(error.code ?? "");
}
