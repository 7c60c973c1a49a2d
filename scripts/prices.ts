// npm run prices: the built-in models' list prices, each with the day on which it was looked up.
// Ends with 0; with --strict 1 when a price is stale; 2 when it was called wrongly.
import { Command, CommanderError } from "commander";
import { whole } from "./admin/arguments.ts";
import { PRICE_DAYS } from "./price-age.ts";
import { jsonOfPrices, pricedRoutes, tableOfPrices } from "./prices-table.ts";

const STALE = 1;
const WRONG_USAGE = 2;
const DAYS_MAX = 36_500;

type Options = { readonly olderThan: number; readonly json?: true; readonly strict?: true };

process.stdout.on("error", () => process.exit(0)); // what read the output has read enough
process.exitCode = run(process.argv.slice(2));

function run(given: readonly string[]): number {
  try {
    const options = program().parse(given, { from: "user" }).opts<Options>();
    const routes = pricedRoutes(Date.now(), options.olderThan);
    const said = options.json === true ? jsonOfPrices(routes) : tableOfPrices(routes);
    process.stdout.write(`${said}\n`);
    return options.strict === true && routes.some(({ stale }) => stale) ? STALE : 0;
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) throw thrown;
    return thrown.exitCode === 0 ? 0 : WRONG_USAGE; // it has said why
  }
}

function program(): Command {
  return new Command("npm run -s prices --")
    .description("Lists the built-in models' prices and the days on which they were looked up.")
    .option(
      "--older-than <days>",
      "a price that was seen longer ago is stale",
      whole(0, DAYS_MAX),
      PRICE_DAYS,
    )
    .option("--json", "print an array, prices in micros per million tokens")
    .option("--strict", "end with 1 when a price is stale")
    .showHelpAfterError("(--help says more)")
    .exitOverride()
    .addHelpText(
      "after",
      `
A price is stale too when the day is over until which its provider announced it, or the model.
They are list prices: what customers pay has the uplift of regional hosts and MARKUP_PERCENT on top.

Ends with 0; with --strict 1 when a price is stale; 2 when it was called wrongly.

Examples:
  npm run -s prices
  npm run -s prices -- --older-than 30 --strict
  npm run -s prices -- --json`,
    );
}
