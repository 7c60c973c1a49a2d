import chromium from "@sparticuz/chromium";
import { buildSite } from "../../scripts/site/build.ts";

/** Unpacks the browser and builds the site once, before two workers use them. */
export default async function prepare(): Promise<void> {
  await chromium.executablePath();
  await buildSite();
}
