/** Describes the routes of browser sessions. The handlers are in api.ts. */
import { AUTHENTICATION_ERRORS, BODY_ERRORS, type RouteDescription } from './route-description.ts';
import { OpenApiDocument, Session, SignInResponse, SignOutResponse, Ticket } from './schemas.ts';

export const SESSION_ROUTES: readonly RouteDescription[] = [
  {
    method: 'POST',
    path: '/sign-in',
    operationId: 'signIn',
    group: 'Sign-in',
    summary: 'Create a browser session with the password or the token of the one-time link',
    parameters: [
      { name: 'password', in: 'body', type: 'string', description: 'The value of `POSTRIDER_OPERATOR_PASSWORD`.' },
      {
        name: 'link',
        in: 'body',
        type: 'string',
        description: 'The token of the sign-in link that the start of the service printed.',
      },
    ],
    access: 'none',
    notes: 'Sets the session cookie. Programs use a token instead.',
    success: [{ schema: SignInResponse }],
    errors: [400, 401, 403, ...BODY_ERRORS, 429],
  },
  {
    method: 'POST',
    path: '/sign-out',
    operationId: 'signOut',
    group: 'Sign-in',
    summary: 'End the session of this browser on every node',
    parameters: [],
    access: 'none',
    success: [{ schema: SignOutResponse }],
    errors: [400, 403, ...BODY_ERRORS, 503],
  },
  {
    method: 'POST',
    path: '/ticket',
    operationId: 'createTicket',
    group: 'Sign-in',
    summary: 'Create a ticket that authenticates the URL of one frame or download',
    parameters: [
      {
        name: 'path',
        in: 'body',
        type: 'string',
        required: true,
        description: 'The path of the URL, beginning with `/api/v1`.',
      },
    ],
    success: [{ schema: Ticket }],
    errors: [400, 401, 403, ...BODY_ERRORS],
  },
  {
    method: 'GET',
    path: '/session',
    operationId: 'showSession',
    group: 'Sign-in',
    summary: 'Show the authenticated actor and the installation',
    parameters: [],
    success: [{ schema: Session }],
    errors: AUTHENTICATION_ERRORS,
  },
  {
    method: 'GET',
    path: '/openapi.json',
    operationId: 'showOperatorDocument',
    group: 'Service',
    summary: 'Get this document',
    parameters: [],
    access: 'none',
    success: [{ schema: OpenApiDocument }],
    errors: [400],
  },
];
