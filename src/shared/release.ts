/**
 * The release number, as in package.json. With unreleased changes, it is the next release's number.
 */
export const RELEASE = "1.2.0";
