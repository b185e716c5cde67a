/**
 * Signs out. If no operator password is set, a dialog asks for confirmation first, because without a password every
 * sign-in needs a new link.
 */
import { ActionIcon, Code } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { notifications } from '@mantine/notifications';
import { IconLogout } from '@tabler/icons-react';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { Session } from '../../src/operator/schemas.ts';
import { signOut as requestSignOut } from './api/session';
import { ConfirmDialog } from './parts/confirm-dialog';

export function SignOut({ session: { password } }: { readonly session: Session }) {
  const queryClient = useQueryClient();
  const [isConfirmOpen, { open, close }] = useDisclosure();
  const signOut = useMutation({
    mutationFn: requestSignOut,
    onSuccess: () => queryClient.resetQueries(),
    onError: ({ message }) => {
      // If no password is set, the dialog shows the error.
      if (password) notifications.show({ color: 'red', message, closeButtonProps: { 'aria-label': 'Close' } });
    },
  });
  return (
    <>
      <ActionIcon
        variant="subtle"
        color="gray"
        size={30}
        aria-label="Sign out"
        loading={password && signOut.isPending}
        onClick={() => (password ? signOut.mutate() : open())}
      >
        <IconLogout size={17} stroke={1.6} aria-hidden />
      </ActionIcon>
      <ConfirmDialog
        opened={isConfirmOpen}
        title="Sign out?"
        action="Sign out"
        busy={signOut.isPending}
        error={signOut.error}
        onConfirm={() => signOut.mutate()}
        onClose={() => {
          signOut.reset();
          close();
        }}
      >
        No operator password is set (POSTRIDER_OPERATOR_PASSWORD), and your sign-in link works only once. To sign in
        again, restart the service: it prints a new link when it starts. Programs use a bearer token, created by{' '}
        <Code>postrider token create NAME</Code>.
      </ConfirmDialog>
    </>
  );
}
