import type { ConfigVariables } from "./config-variables.ts";

const LOOPBACK = /^http:\/\/(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/;
const STRIPE = "https://api.stripe.com";
const WEBHOOK_SECRETS_MAX = 2;

export type PaymentsConfig = {
  readonly secretKey: string;
  readonly isLive: boolean;
  readonly webhookSecrets: readonly string[];
  readonly baseUrl: string;
  readonly hasTax: boolean;
  readonly taxCode: string | null;
};

/**
 * Parses the STRIPE_* variables. Without STRIPE_SECRET_KEY, returns null: card payments are off.
 */
export function parsePayments(variables: ConfigVariables): PaymentsConfig | null {
  const { text, sandbox, addProblem } = variables;
  const tax = text("STRIPE_TAX") || "off";
  if (tax !== "on" && tax !== "off") addProblem("STRIPE_TAX", "must be one of on, off");
  const config = {
    secretKey: text("STRIPE_SECRET_KEY"),
    isLive: !sandbox,
    webhookSecrets: listOf(text("STRIPE_WEBHOOK_SECRETS")),
    baseUrl: text("STRIPE_BASE_URL") || STRIPE,
    hasTax: tax === "on",
    taxCode: text("STRIPE_TAX_CODE") || null,
  };
  if (config.secretKey === "") return null;
  checkSecrets(config, variables);
  checkOthers(config, variables);
  return config;
}

function checkSecrets(
  { secretKey, webhookSecrets }: PaymentsConfig,
  variables: ConfigVariables,
): void {
  const mode = variables.sandbox ? "test" : "live";
  if (!new RegExp(`^(?:sk|rk)_${mode}_\\w{8,250}$`).test(secretKey)) {
    const problem = `must be a key of Stripe's that begins with sk_${mode}_ or rk_${mode}_`;
    variables.addProblem("STRIPE_SECRET_KEY", problem);
  }
  const areSound = webhookSecrets.every((secret) => /^whsec_\w{8,250}$/.test(secret));
  const count = webhookSecrets.length;
  if (areSound && count >= 1 && count <= WEBHOOK_SECRETS_MAX) return;
  const problem = "must be one or two secrets, whsec_..., the newest first";
  variables.addProblem("STRIPE_WEBHOOK_SECRETS", problem);
}

function checkOthers(
  { baseUrl, taxCode }: PaymentsConfig,
  { sandbox, addProblem }: ConfigVariables,
): void {
  if (baseUrl !== STRIPE && !(sandbox && LOOPBACK.test(baseUrl))) {
    addProblem("STRIPE_BASE_URL", "must be on loopback, and is for SANDBOX alone");
  }
  if (taxCode !== null && !/^txcd_\d{8}$/.test(taxCode)) {
    addProblem("STRIPE_TAX_CODE", "must be a tax code of Stripe's, txcd_ and eight digits");
  }
}

function listOf(text: string): readonly string[] {
  return text === "" ? [] : text.split(",").map((one) => one.trim());
}
