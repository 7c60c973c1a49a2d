import chromium from "@sparticuz/chromium";

/** Unpacks the browser once, before two workers start it. */
export default async function unpackBrowser(): Promise<void> {
  await chromium.executablePath();
}
