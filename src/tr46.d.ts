/** The part of tr46 6 that is used here; the package has no types. */
declare module "tr46" {
  interface ProcessingOptions {
    readonly checkHyphens: boolean;
    readonly checkBidi: boolean;
    readonly checkJoiners: boolean;
    readonly useSTD3ASCIIRules: boolean;
    readonly transitionalProcessing: boolean;
    readonly ignoreInvalidPunycode: boolean;
  }
  export function toASCII(
    domainName: string,
    options: ProcessingOptions & { readonly verifyDNSLength: boolean },
  ): string | null;
  export function toUnicode(
    domainName: string,
    options: ProcessingOptions,
  ): { readonly domain: string; readonly error: boolean };
}
