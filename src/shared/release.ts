/** The release number in package.json. Unreleased changes have the next number. */
export const RELEASE = "1.2.0";
