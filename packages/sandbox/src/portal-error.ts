/** A request that the portal rejects, with a sentence for the developer. */
export class PortalError extends Error {
  readonly status: 404 | 409 | 422;

  constructor(status: 404 | 409 | 422, message: string) {
    super(message);
    this.name = "PortalError";
    this.status = status;
  }
}
