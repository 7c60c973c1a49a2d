// npm run prices: lists the built-in models' prices and the day when each was checked. Exits with
// 0, with 1 if --strict finds a stale price, or with 2 for wrong usage.
import type { Command } from "commander";
import { wholeNumber } from "./admin/arguments.ts";
import { jsonOfPrices, PRICE_DAYS, pricedRoutes, tableOfPrices } from "./prices-table.ts";
import { programOf, runProgram } from "./program.ts";

const STALE = 1;
const DAYS_MAX = 36_500;

type Options = { readonly olderThan: number; readonly json?: true; readonly strict?: true };

await runProgram((given) => {
  const options = program().parse(given, { from: "user" }).opts<Options>();
  const routes = pricedRoutes(Date.now(), options.olderThan);
  const output = options.json === true ? jsonOfPrices(routes) : tableOfPrices(routes);
  process.stdout.write(`${output}\n`);
  return options.strict === true && routes.some(({ stale }) => stale) ? STALE : 0;
});

function program(): Command {
  return programOf("prices", "Lists the built-in models' prices and the day when each was checked.")
    .option(
      "--older-than <days>",
      "days after which a price is stale",
      wholeNumber(0, DAYS_MAX),
      PRICE_DAYS,
    )
    .option("--json", "print a JSON array, with prices in micro-credits per million tokens")
    .option("--strict", "exit with 1 if a price is stale")
    .addHelpText(
      "after",
      `
A price is also stale after the last day for which the provider announced the price or the model.
These are list prices. Customers also pay the surcharge of regional hosts and MARKUP_PERCENT.

Exits with 0, with 1 if --strict finds a stale price, or with 2 for wrong usage.

Examples:
  npm run -s prices
  npm run -s prices -- --older-than 30 --strict
  npm run -s prices -- --json`,
    );
}
