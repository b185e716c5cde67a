/** The fields of an endpoint that can be changed later: URL, name and events. */
import { TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import type { WebhookEventType } from '../../../src/model/webhook.ts';
import { findFieldError } from '../parts/field-error';
import { EventSelect } from './event-select';

export interface EndpointValues {
  readonly url: string;
  readonly name: string;
  readonly events: readonly WebhookEventType[];
}

interface EndpointFieldsProps {
  readonly values: EndpointValues;
  /** The error of the request, which is shown at the field that causes it. */
  readonly error: unknown;
  readonly onChange: (values: EndpointValues) => void;
  /** Further fields, between the name and the events. */
  readonly children?: ReactNode;
}

export function EndpointFields({ values, error, onChange, children }: EndpointFieldsProps) {
  return (
    <>
      <TextInput
        label="URL"
        description="It receives a signed POST request for each event."
        placeholder="https://app.example.com/webhooks"
        value={values.url}
        onChange={(event) => onChange({ ...values, url: event.currentTarget.value })}
        error={findFieldError(error, 'url')}
        autoComplete="off"
        autoCapitalize="off"
        spellCheck={false}
        required
        data-autofocus
      />
      <TextInput
        label="Name"
        description="A label, such as the name of the application"
        value={values.name}
        onChange={(event) => onChange({ ...values, name: event.currentTarget.value })}
        error={findFieldError(error, 'name')}
        maxLength={64}
        autoComplete="off"
      />
      {children}
      <EventSelect
        selected={values.events}
        onChange={(events) => onChange({ ...values, events })}
        error={findFieldError(error, 'events')}
      />
    </>
  );
}

/** Returns true if the values are complete. */
export function isComplete({ url, events }: EndpointValues): boolean {
  return url.trim() !== '' && events.length > 0;
}

/** Returns true if the error concerns one of these fields, or the account. */
export function hasEndpointFieldError(error: unknown): boolean {
  return ['url', 'name', 'events', 'account'].some((field) => findFieldError(error, field) !== null);
}
