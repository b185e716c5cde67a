/** The routes of a browser's session as data for the document; api.ts has their handlers. */
import { BODY_ERRORS, type RouteDescription, SIGNED_IN_ERRORS } from './route-description.ts';
import { OpenApiDocument, Session, SignedIn, SignedOut, Ticket } from './schemas.ts';

export const SESSION_ROUTES: readonly RouteDescription[] = [
  {
    method: 'POST',
    path: '/sign-in',
    operationId: 'signIn',
    group: 'Sign-in',
    summary: 'Begin a session of a browser, by the password or by the word of the one-time link',
    parameters: [
      { name: 'password', in: 'body', type: 'string', description: 'The value of `POSTRIDER_OPERATOR_PASSWORD`.' },
      { name: 'link', in: 'body', type: 'string', description: 'The word of the link that the start printed.' },
    ],
    access: 'none',
    notes: 'Sets the cookie of the session. Programs use a token instead.',
    success: [{ schema: SignedIn }],
    errors: [400, 401, 403, ...BODY_ERRORS, 429],
  },
  {
    method: 'POST',
    path: '/sign-out',
    operationId: 'signOut',
    group: 'Sign-in',
    summary: 'End the session of this browser, on every node',
    parameters: [],
    access: 'none',
    success: [{ schema: SignedOut }],
    errors: [400, 403, ...BODY_ERRORS, 503],
  },
  {
    method: 'POST',
    path: '/ticket',
    operationId: 'createTicket',
    group: 'Sign-in',
    summary: 'Make what stands for the session in the URL of one frame or download',
    parameters: [
      {
        name: 'path',
        in: 'body',
        type: 'string',
        required: true,
        description: 'The path of that URL, from `/api/v1` on.',
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
    summary: 'Show who is signed in, and the installation',
    parameters: [],
    success: [{ schema: Session }],
    errors: SIGNED_IN_ERRORS,
  },
  {
    method: 'GET',
    path: '/openapi.json',
    operationId: 'showOperatorDocument',
    group: 'Service',
    summary: 'This document',
    parameters: [],
    access: 'none',
    success: [{ schema: OpenApiDocument }],
    errors: [400],
  },
];
