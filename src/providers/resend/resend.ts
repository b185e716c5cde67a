/** Resend, https://resend.com. */
import type { Provider } from '../provider.ts';
import { RESEND_EVENTS } from './events.ts';
import { RESEND_RELAY } from './profile.ts';

export const RESEND: Provider = {
  name: 'resend',
  title: 'Resend',
  relay: RESEND_RELAY,
  events: RESEND_EVENTS,
};
