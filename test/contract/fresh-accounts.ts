import { openAccount } from "./client.ts";
import type { Account, AccountOptions } from "./client.ts";

/** Below the keys' limit of 1,000 requests per minute. */
const USES_MAX = 900;

/** Accounts for any number of requests. A new one replaces an account before its rate limit ends requests. */
export class FreshAccounts {
  readonly #options: AccountOptions;
  #account: Account | null = null;
  #uses = 0;

  constructor(options: AccountOptions = {}) {
    this.#options = options;
  }

  /** Returns the account for a number of requests with its key. */
  async next(uses = 1): Promise<Account> {
    this.#uses += uses;
    if (this.#account === null || this.#uses > USES_MAX) {
      this.#account = await openAccount(this.#options);
      this.#uses = uses;
    }
    return this.#account;
  }
}
